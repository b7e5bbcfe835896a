-- Health of Swarm and Agent for Argo CD, by the rules that kstatus has for every object:
-- Terminating, then a status of an older generation, then Reconciling, then Stalled, then Ready.
-- Put it into the ConfigMap argocd-cm under resource.customizations.health.alineo.dev_Swarm and ..._Agent.
local function find(status, kind)
  for _, condition in ipairs(status.conditions or {}) do
    if condition.type == kind then
      return condition
    end
  end
  return nil
end

local function is_true(condition)
  return condition ~= nil and condition.status == "True"
end

local function say(health, condition, otherwise)
  local message = otherwise
  if condition ~= nil and condition.message ~= nil and condition.message ~= "" then
    message = condition.message
  end
  return { status = health, message = message }
end

local status = obj.status or {}
local ready, stalled, reconciling = find(status, "Ready"), find(status, "Stalled"), find(status, "Reconciling")

if obj.metadata.deletionTimestamp ~= nil then
  return say("Progressing", nil, "it is being deleted")
end
if status.observedGeneration ~= obj.metadata.generation then
  return say("Progressing", nil, "the operator has not seen this generation yet")
end
if is_true(reconciling) then
  return say("Progressing", reconciling, "it is being reconciled")
end
if is_true(stalled) then
  return say("Degraded", stalled, "it is stalled")
end
if is_true(ready) then
  if ready.reason == "Suspended" then
    return say("Suspended", ready, "it is paused")
  end
  return say("Healthy", ready, "it is ready")
end
return say("Progressing", ready, "it is not ready yet")
