"""The JSON Schemas in the package are those of the classes."""

import json

import pytest

from compilediag.json_document import find_schema_file, make_schema
from compilediag.views.findings_document import FindingsDocument


@pytest.mark.parametrize("document", [FindingsDocument])
def test_a_schema_in_the_package_is_that_of_its_class(document):
    assert json.loads(find_schema_file(document.SCHEMA).read_text()) == make_schema(document), "run make docs"
