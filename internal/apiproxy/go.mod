module github.com/sallyport/sallyport/internal/apiproxy

go 1.26.0

require (
	github.com/aws/aws-lambda-go v1.55.1
	github.com/sallyport/sallyport v0.0.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/awslabs/aws-lambda-go-api-proxy v0.16.2
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/text v0.44.0 // indirect
)

replace github.com/sallyport/sallyport => ../..
