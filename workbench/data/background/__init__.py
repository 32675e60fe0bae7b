"""What works for a pipeline besides its reader: threads that read ahead, crews that call functions."""
