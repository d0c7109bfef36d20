module example.com/use-client

go 1.26

require (
	example.com/your/leadintake v0.0.0
	github.com/google/uuid v1.6.0
)

replace example.com/your/leadintake => ./client
