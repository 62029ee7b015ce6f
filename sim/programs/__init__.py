"""Networks whose switches run P4 programs as machine code, beside the kernels' own switches."""
