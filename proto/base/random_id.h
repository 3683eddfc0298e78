// Ids that nobody else has, on whatever machine: for what several clusters may
// meet in one place, such as a directory of checkpoints.
#ifndef TROUPE_PROTO_BASE_RANDOM_ID_H_
#define TROUPE_PROTO_BASE_RANDOM_ID_H_

#include <functional>
#include <string>

namespace troupe {

// 16 hexadecimal digits: 64 bits of the kernel's randomness.
std::string RandomId();

// Where ids come from; a test gives its own.
using NewId = std::function<std::string()>;

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_RANDOM_ID_H_
