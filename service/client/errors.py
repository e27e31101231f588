"""The error of the client."""

from partita.service.problem_document import ProblemDocument


class ServiceError(Exception):
    """A call that has no result; the text says why.

    Attributes
    ----------
    document
        The problem document of the server, with the places that are wrong; None where it sent none.
    job
        The job that it is about, which may go on; None where there is none or it is not known.
    """

    def __init__(self, message: str, document: ProblemDocument | None = None, job: str | None = None) -> None:
        super().__init__(message)
        self.document = document
        self.job = job

    @property
    def status(self) -> int | None:
        """The status code of the problem document; None where there is none."""
        return None if self.document is None else self.document.status

    @property
    def kind(self) -> str | None:
        """The stable name of the kind of problem, such as ``queue-full``; None where there is no document."""
        return None if self.document is None else self.document.kind


def explained(document: ProblemDocument, job: str | None = None) -> ServiceError:
    """Make the error that a problem document explains."""
    places = [f"{each.parameter or each.pointer or 'body'}: {each.detail}" for each in document.errors]
    return ServiceError("; ".join((f"{document.title}: {document.detail}", *places)), document, job)
