-- Health of a claim: deleted, paused, refused, not done yet, failed or degraded, Ready.
-- It uses no library, since Argo CD loads none for scripts of its ConfigMap.
local function health(status, message)
  return { status = status, message = message }
end

local metadata, status = obj.metadata, obj.status or {}
if metadata.deletionTimestamp ~= nil then
  return health("Progressing", "Being deleted")
end
if metadata.annotations ~= nil and metadata.annotations["crossplane.io/paused"] == "true" then
  return health("Suspended", "Paused by annotation crossplane.io/paused")
end

local conditions = {}
for _, c in ipairs(status.conditions or {}) do
  conditions[c.type] = c
end
local ready, synced, stalled = conditions.Ready or {}, conditions.Synced or {}, conditions.Stalled or {}

-- Crossplane writes Synced with every pass: what it is about, Stalled is about too.
local isDone = status.observedGeneration == metadata.generation
if stalled.status == "True" and (isDone or synced.observedGeneration == metadata.generation) then
  return health("Degraded", stalled.message)
end
if not isDone then
  if synced.status == "False" then
    return health("Progressing", synced.message)
  end
  return health("Progressing", status.message or "Waiting for the change to be observed")
end
if status.phase == "Failed" or status.phase == "Degraded" then
  return health("Degraded", status.message)
end
if ready.status ~= "True" then
  return health("Progressing", status.message or ready.message)
end
if status.phase == "Hibernated" then
  return health("Suspended", "Hibernated: no server runs")
end
return health("Healthy", status.message)
