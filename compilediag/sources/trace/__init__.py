"""Hooks on the structured trace: graphs, generated code, guard trees and symbolic shapes."""
