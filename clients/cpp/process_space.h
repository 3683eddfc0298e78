// Where the processes are that the files of a cluster name: those of a folder
// that hosts or containers share may be others' than this process sees.
#ifndef TROUPE_CLIENTS_CPP_PROCESS_SPACE_H_
#define TROUPE_CLIENTS_CPP_PROCESS_SPACE_H_

#include <string>

#include "nlohmann/json_fwd.hpp"
#include "proto/base/process_state.h"

namespace troupe {

// The member of an object; empty where there is none, or it is no text.
std::string TextIn(const nlohmann::json& json, const char* key);

// The members "host", "boot" and "pids" of an object; what is not there, as an
// older build wrote it, is left empty.
ProcessSpace ProcessSpaceIn(const nlohmann::json& json);

// Whether processes that a file in `dir` names live where this one neither sees
// nor ends them. Of another container on this machine they do only as long as
// the scheduler holds DIR/lock: one that is started anew has another PID
// namespace than it had. After a reboot nothing lives.
bool LiveElsewhere(const ProcessSpace& space, const std::string& dir);

// "host7", or "host7 in another container"; of such that live elsewhere.
std::string PlaceName(const ProcessSpace& space);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CPP_PROCESS_SPACE_H_
