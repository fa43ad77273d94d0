"""How streams are followed: by ids of entries, and by how many the server ever had."""
