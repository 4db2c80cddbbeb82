"""What the tests share: small problems, small trainings, and independent programs to compare with."""
