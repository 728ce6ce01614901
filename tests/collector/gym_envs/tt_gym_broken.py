"""A module that needs what nobody has."""
import tt_there_is_no_such_package  # noqa: F401
