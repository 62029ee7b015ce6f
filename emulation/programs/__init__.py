"""P4 programs ready to run: ours or a user's, by our compiler or p4c, for our switch or BMv2."""
