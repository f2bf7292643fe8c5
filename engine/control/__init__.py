"""What a user steers the writing by: guide text, steering vectors, penalties. Each is off unless asked for."""
