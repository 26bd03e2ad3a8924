"""Skills: folders with a SKILL.md by which coding agents write tasks and make kernels faster."""
