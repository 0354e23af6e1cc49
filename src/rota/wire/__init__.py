"""What passes between a worker and Rota, in wire names: one form, for the server and for those who ask it."""
