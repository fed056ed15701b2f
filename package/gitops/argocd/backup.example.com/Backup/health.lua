-- Health of a Backup: deleted, paused, stalled, not done yet, failed, suspended, Ready.
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
local phase = status.atProvider ~= nil and status.atProvider.phase
if stalled.status == "True" and stalled.observedGeneration == metadata.generation then
  return health("Degraded", stalled.message)
end
if status.observedGeneration ~= metadata.generation then
  if synced.status == "False" then
    return health("Progressing", synced.message)
  end
  return health("Progressing", ready.message or "Waiting for the provider")
end
if phase == "Failed" then
  return health("Degraded", ready.message)
end
if phase == "Suspended" then
  return health("Suspended", "The schedule is suspended")
end
if ready.status ~= "True" then
  return health("Progressing", ready.message)
end
return health("Healthy", ready.message)
