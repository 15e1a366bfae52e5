base:
  '*': [corpus]
