// Package endpoint connects commands to the Kinesis and DynamoDB APIs.
//
// Its flags name the endpoint, the region and the profile, as the AWS CLI does. Its errors name the
// next step: a stream that does not exist, a server that is not running, no credentials.
package endpoint
