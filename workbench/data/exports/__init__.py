"""Datasets as what other libraries take: PyTorch, Arrow, pandas, Hugging Face."""
