"""mem0: its HTTP API at `/mem0`, so that its clients use this memory."""

from memoriter.extension import Extension, Offer

extension = Extension(name="mem0", mounts={"mem0": Offer("memoriter.extensions.mem0.api:Mem0Mount")})
