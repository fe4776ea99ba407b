"""Guards: torch's texts of guards, guard trees and failed guards as values."""
