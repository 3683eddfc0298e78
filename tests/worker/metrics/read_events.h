// Reads TensorBoard event files back: the framing, both checksums of each
// record, and the events. Checks all that a reader may rely on.
#ifndef TROUPE_TESTS_WORKER_METRICS_READ_EVENTS_H_
#define TROUPE_TESTS_WORKER_METRICS_READ_EVENTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "proto/tensorboard.pb.h"

namespace troupe {

// The events of one file; a failed CHECK where it is no such file.
std::vector<tensorboard::Event> ReadEvents(const std::string& path);

// The names of the event files in a folder, in the order of a reader.
std::vector<std::string> EventFilesIn(const std::string& folder);

// A curve by its tag: values by step.
using Curves = std::map<std::string, std::map<int64_t, float>>;

// What TensorBoard shows of a folder: its files in the order of their names,
// without what a later START makes void.
Curves ReadCurves(const std::string& folder);

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_METRICS_READ_EVENTS_H_
