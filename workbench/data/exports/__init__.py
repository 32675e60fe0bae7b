"""Datasets in the form that other libraries accept: PyTorch, Arrow, pandas, Hugging Face."""
