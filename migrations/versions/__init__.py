"""One module per revision; each header says why it is safe beside the code before it."""
