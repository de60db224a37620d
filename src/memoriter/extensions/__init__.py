"""Extensions that come with memoriter, each in one folder. The core finds them as it finds those of other packages."""
