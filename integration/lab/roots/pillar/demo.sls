demo:
  site: a lab of three masters
  for: {{ grains['id'] }}
  numbers: [1, 2, 3]
