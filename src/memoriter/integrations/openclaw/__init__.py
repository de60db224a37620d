"""What did another memory leave behind? Found, previewed, and taken in without overwriting anything."""
