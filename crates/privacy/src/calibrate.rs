//! Least noise, most steps or best epsilon for a budget, rounded to the safe side.
