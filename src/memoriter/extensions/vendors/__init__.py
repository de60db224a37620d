"""What the extensions of vendors share: embedders and chats over a vendor's client, transport and batch jobs."""
