"""Delivery: the relay, and the sinks that it sends to."""
