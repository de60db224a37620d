"""Hermes Agent: import of its memory and its sessions."""

from memoriter.extension import Extension, Offer

extension = Extension(name="hermes", importers={"hermes": Offer("memoriter.extensions.hermes.home:HERMES")})
