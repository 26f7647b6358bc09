-- SPDX-License-Identifier: MIT
-- For slurmctld's job_submit.lua: converts --gpupart of a job to counted resources. TPCs become
-- shards of a GPU, and the memory quota becomes tpcmem in MiB. 'gpupart slurm-conf' writes the list
-- of boards.
local gpupart = { boards = {} }

local OPTION = "_SLURM_SPANK_OPTION_gpupart_gpupart="
local UNITS = { [""] = 1, k = 1024, m = 1024 ^ 2, g = 1024 ^ 3, t = 1024 ^ 4,
		kb = 1000, mb = 1000 ^ 2, gb = 1000 ^ 3, tb = 1000 ^ 4 }

-- Returns the value of --gpupart, or nil, and how many times the option is given. srun writes it
-- once. If it were given twice, it would be unknown which value the node reads. Slurm's table
-- begins at 0.
function gpupart.words_of(job_desc)
	local env, text, nr = job_desc.spank_job_env, nil, 0
	if type(env) ~= "table" then return nil, 0 end
	for _, value in pairs(env) do
		if string.sub(value, 1, #OPTION) == OPTION then
			text = string.sub(value, #OPTION + 1)
			nr = nr + 1
		end
	end
	return text, nr
end

-- Converts a size to MiB, rounded up, or returns nil.
local function mib(text)
	local number, unit = string.match(string.lower(text), "^(%d+%.?%d*)(%a*)$")
	unit = unit and string.gsub(unit, "ib$", "")
	if unit == "b" then unit = "" end
	if not number or not UNITS[unit] then return nil end
	return math.ceil(tonumber(number) * UNITS[unit] / 1024 ^ 2)
end

-- Returns the request in the text, or nil and a message. If the job was submitted with the plugin,
-- the plugin has already checked the text.
function gpupart.read(text)
	local want, seen = { mem = 0, cluster = 0 }, {}
	for word in string.gmatch(text, "[^,]+") do
		local name, value = string.match(word, "^(%l+)=(.+)$")
		local number = value and string.match(value, "^%d+$") and tonumber(value)
		if seen[name or word] then
			return nil, "--gpupart " .. text .. ": " .. word .. ": is given twice"
		end
		seen[name or word] = true
		if word == "gpcs" or word == "ugpu" then
			want[word] = true
		elseif name == "mem" and mib(value) then
			want.mem = mib(value)
		elseif (name == "tpcs" or name == "cluster" or name == "wait") and number then
			want[name] = number
		else
			return nil, "--gpupart " .. text .. ": '" .. word .. "' is not known"
		end
	end
	if not want.tpcs or want.tpcs < 1 then
		return nil, "--gpupart " .. text .. ": tpcs=N is missing"
	end
	return want
end

-- Returns the number of TPCs that a cluster with this number of blocks needs. A TPC has two SMs.
-- The number is rounded up to a power of 2.
local function home(blocks)
	local room = 1
	while room < blocks do room = room * 2 end
	return math.max(room / 2, 1)
end

-- Returns the reason why an idle board cannot satisfy the request, or nil if it can.
local function misfit(want, board)
	if want.tpcs > board.tpcs then
		return "has " .. board.tpcs .. " TPCs"
	elseif want.mem > board.memory then
		return "has " .. board.memory .. " MiB"
	elseif want.ugpu and want.tpcs > board.ugpu then
		return "has " .. board.ugpu .. " TPCs in its largest uGPU"
	elseif want.gpcs and want.tpcs < board.gpc then
		return "has no GPC of fewer than " .. board.gpc .. " TPCs"
	elseif want.cluster > 0 and (home(want.cluster) > board.home or
				     home(want.cluster) > want.tpcs) then
		return "has room for clusters of at most " .. 2 * math.min(board.home, want.tpcs) ..
			" blocks in " .. want.tpcs .. " TPCs"
	end
	return nil
end

-- If no board can ever satisfy the request, returns a message, otherwise nil.
function gpupart.never(text, want)
	local seen, why = {}, {}
	for _, board in ipairs(gpupart.boards) do
		local one = misfit(want, board)
		if not one then return nil end
		one = board.gpu .. " " .. one
		if not seen[one] then
			seen[one] = true
			why[#why + 1] = one
		end
	end
	if #why == 0 then return nil end
	return "--gpupart " .. text .. " can never run here: " .. table.concat(why, "; ")
end

local function asks_for(job_desc, name)
	for _, field in ipairs({ "gres", "tres_per_node", "tres_per_job", "tres_per_task",
				 "tres_per_socket" }) do
		local value = job_desc[field]
		if type(value) == "string" and
		   string.find("," .. value .. ",", "[,:/]" .. name .. "[:,=]") then
			return true
		end
	end
	return false
end

-- Returns true if Slurm may accept the job. Otherwise sends the user a message and returns false.
function gpupart.submit(job_desc)
	local text, nr = gpupart.words_of(job_desc)
	if nr > 1 then
		slurm.log_user("gpupart: --gpupart is given %d times: give it once", nr)
		return false
	end
	if not text then
		if asks_for(job_desc, "shard") or asks_for(job_desc, "tpcmem") then
			slurm.log_user("gpupart: request shard and tpcmem with --gpupart tpcs=N[,mem=SIZE]")
			return false
		end
		return true
	end
	local want, why = gpupart.read(text)
	why = why or gpupart.never(text, want)
	if not why and (asks_for(job_desc, "shard") or asks_for(job_desc, "tpcmem") or
			asks_for(job_desc, "gpu")) then
		why = "--gpupart " .. text .. " and a --gres or --gpus of gpu, shard or tpcmem: use only one of them"
	end
	-- Slurm would allocate all gres of the node, and would then not find the requested gres.
	if not why and job_desc.shared == 0 then
		why = "--gpupart " .. text .. " and --exclusive, which allocates whole GPUs: use only one of them"
	end
	if why then
		slurm.log_user("gpupart: %s", why)
		return false
	end
	local gres = "gres:shard:" .. want.tpcs
	if want.mem > 0 then gres = gres .. ",gres:tpcmem:" .. want.mem end
	if type(job_desc.gres) == "string" and job_desc.gres ~= "" then
		gres = job_desc.gres .. "," .. gres
	end
	job_desc.gres = gres
	return true
end

-- Only root can change the counted resources of a pending job.
function gpupart.modify(job_desc, uid)
	if uid ~= 0 and (asks_for(job_desc, "shard") or asks_for(job_desc, "tpcmem")) then
		slurm.log_user("gpupart: the request of --gpupart cannot be changed: submit the job again")
		return false
	end
	return true
end

return gpupart
