"""From a dataset to policies: set-up, the two stages of training, selection, and the run that results."""
