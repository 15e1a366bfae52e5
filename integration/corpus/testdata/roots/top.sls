base:
  '*': [simple]
