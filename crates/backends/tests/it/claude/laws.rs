//! What is true of every recording, cut and interrupted at every line.
