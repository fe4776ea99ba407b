"""`python -m tests.advice [NAME ...]`: what works and what does not, without pytest."""

from .advice_report import main

main()
