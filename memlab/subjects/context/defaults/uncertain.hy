(fn []
  "A context does not say how sure a memory is."
  false)
