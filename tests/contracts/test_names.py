"""The public names: imported when first asked for."""

import subprocess
import sys

import pytest

import aetdice


@pytest.mark.parametrize("name", aetdice.__all__)
def test_public_name_is_found_where_it_is_said_to_be(name):
    assert getattr(aetdice, name).__name__ == name
    assert name in dir(aetdice)


def test_every_home_holds_public_names_only():
    assert sorted(name for names in aetdice._HOMES.values() for name in names) == sorted(aetdice.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'tain'"):
        aetdice.tain  # noqa: B018


def test_help_needs_no_jax():
    code = "import sys, aetdice.cli.solve; sys.exit('jax' in sys.modules or 'scipy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
