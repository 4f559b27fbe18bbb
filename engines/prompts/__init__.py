"""What a language model is asked: templates, the frame around untrusted words, clean input."""
