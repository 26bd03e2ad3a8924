"""Several evaluators as one: `fleet.Fleet` implements `kernel_foundry.ports.Evaluator`."""
