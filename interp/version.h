/* The version of interp that these headers belong to. CMake checks that project() says the same. */
#ifndef INTERP_VERSION_H_
#define INTERP_VERSION_H_

#define INTERP_VERSION_MAJOR 0
#define INTERP_VERSION_MINOR 1
#define INTERP_VERSION_PATCH 0
#define INTERP_VERSION_STRING "0.1.0"

#endif /* INTERP_VERSION_H_ */
