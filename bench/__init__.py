"""How fast Duebook is, beside its peers and the limit of the machine: `python -m bench`."""
