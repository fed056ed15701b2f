package v1

// PausedWithAnnotation names the claim that an object is paused with, as "Kind
// name". What was paused by hand does not have it.
const PausedWithAnnotation = "storeplane.example.com/paused-with"
