// Makes the machine of a TCP port of this process seem gone: the kernel drops
// what the port's connections are sent before it acknowledges it, as if the
// link were cut, and nobody is told.
#ifndef TROUPE_TESTS_WORKER_SERVICE_CUT_OFF_H_
#define TROUPE_TESTS_WORKER_SERVICE_CUT_OFF_H_

namespace troupe {

// How many of its open connections were cut off.
int CutOff(int port);

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_SERVICE_CUT_OFF_H_
