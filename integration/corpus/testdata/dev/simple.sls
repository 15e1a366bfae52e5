in dev:
  test.succeed_with_changes: []
