// The objects of answers. Made by `python -m clients.generate` from the table of routes; do not edit.
export {};
