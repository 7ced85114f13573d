(fn []
  "Mark no memory as uncertain."
  false)
