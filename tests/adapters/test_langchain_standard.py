"""The standard tests of retrievers that LangChain publishes as langchain-tests."""

import pytest

import memlab

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("default")]
retrievers = pytest.importorskip("langchain_tests.integration_tests")

from memlab.io.adapters.langchain import LabRetriever


class TestStandard(retrievers.RetrieversIntegrationTests):
    """LangChain's own tests of a retriever."""

    @property
    def retriever_constructor(self):
        return LabRetriever

    @property
    def retriever_constructor_params(self):
        lab = memlab.open()
        lab.remember([f"Note {number} about the garden" for number in range(8)])
        return {"lab": lab}

    @property
    def retriever_query_example(self):
        return "what about the garden?"
