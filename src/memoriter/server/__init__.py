"""Servers and the web page. Each adapts `Memory` to one protocol and contains no memory logic."""
