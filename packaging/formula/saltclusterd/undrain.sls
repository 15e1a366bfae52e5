saltclusterd-undrain:
  cmd.run:
    - name: saltclusterctl undrain --timeout 5m
