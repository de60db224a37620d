"""How do agents and people come in? Each door adapts `Memory` to one way of asking, and holds no logic of its own."""
