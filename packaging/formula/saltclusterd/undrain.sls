saltclusterd-undrain:
  cmd.run:
    - name: saltclusterctl undrain --self --timeout 5m
